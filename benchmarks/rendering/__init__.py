"""Scenes with exact truth: drawn as correspondences, or rendered as pairs of pictures."""

from rendering.correspondences import Correspondences as Correspondences
from rendering.correspondences import draw_correspondences as draw_correspondences
from rendering.layouts import desk_scene as desk_scene
from rendering.layouts import facade_scene as facade_scene
from rendering.layouts import plane_scene as plane_scene
from rendering.layouts import rigid_scene as rigid_scene
from rendering.pictures import render_pair as render_pair
from rendering.pictures import render_shots as render_shots
from rendering.scenes import Scene as Scene
from rendering.scenes import look_at as look_at
