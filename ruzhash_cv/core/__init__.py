"""What decides: kernels, families of models, isolation forests and the method. All other rooms stand between matches and their mask."""
