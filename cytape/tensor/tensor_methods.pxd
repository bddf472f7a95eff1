# Methods of tensors that are functions, some of higher rooms, and errors for attributes that they
# do not have. `install_methods` adds them to the class.
