"""What pages and API are built on: who asks, what they sent, the lane of uploads, and replies in common."""
