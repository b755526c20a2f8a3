echo configured
