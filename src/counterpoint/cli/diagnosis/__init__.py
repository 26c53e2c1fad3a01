"""What `counterpoint diagnose` finds out, says and draws; each module one of its questions."""
