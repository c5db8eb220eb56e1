"""The models behind the matches: the search for them, their evidence, repeated texture."""
