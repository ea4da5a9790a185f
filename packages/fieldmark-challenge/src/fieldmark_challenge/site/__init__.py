"""The application: all routers on one server, and the pages of visitors and their accounts."""
