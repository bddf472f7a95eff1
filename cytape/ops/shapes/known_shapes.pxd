# The shape rules that tracing calls most, for the common case: all extents are known, and
# attributes are what they usually are. In any other case, errors among them, the rule of the same
# name in shape_rules decides.
#
# The duplication is deliberate: a trace of such ops takes two and a half times the
# instructions with shape_rules alone. The tests compare the two.
