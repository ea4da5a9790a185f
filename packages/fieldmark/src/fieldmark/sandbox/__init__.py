"""Walls around code that is not trusted: bubblewrap, seccomp, and limits on memory."""
