"""Rendered scenes by their seed, each built once in a session."""

import functools

import rendering

plane_scene = functools.cache(rendering.plane_scene)
facade_scene = functools.cache(rendering.facade_scene)
rigid_scene = functools.cache(rendering.rigid_scene)
desk_scene = functools.cache(rendering.desk_scene)
