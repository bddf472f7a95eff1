# Which elements of lines are equal to the one number that stands for the line.
#
# An array in C order is blocks of `n` rows of `inner` elements, and a line is what lies in one
# column of a block: of a vector there is one block, and its rows are elements.
