"""Pictures of programs as SVG: boxes and arrows, and curves."""
