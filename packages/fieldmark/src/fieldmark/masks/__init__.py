"""What masks are: run lengths, pictures, tables and COCO."""
