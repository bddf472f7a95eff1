# Fast versions of frequent shape rules, for known extents and attributes of the usual types. In all
# other cases, errors included, they call the rule of the same name in shape_rules.
#
# The duplication is deliberate: with shape_rules alone, tracing such ops takes two and a half times
# the instructions. The tests compare the two.
