"""Who may do what, judged by a policy simulator that is not ours over the templates of shipped files."""
