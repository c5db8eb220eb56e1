"""The method: its modules follow the sections of docs/method.md, and `estimate` runs them from matches to motions."""
