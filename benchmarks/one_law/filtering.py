"""x"""
class Result: pass
def filter_points(): pass
