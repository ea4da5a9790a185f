"""What people can do on the platform, each declared once: pages, API and shell are made from it.

```
declarations   what an action is: a function, a typed request, the right it needs
course, offers, taking_part, programs   the actions of organizers
fields         how each field of a request is shown and read: in forms, by the API, in the shell
api, forms     routes of the API, and forms of pages, made from the actions (`cli.verbs` makes the verbs)
```
"""

from fieldmark_challenge.actions import course, offers, programs, taking_part

ORGANIZING = (offers.actions, course.actions, taking_part.actions, programs.actions)
