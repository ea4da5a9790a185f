"""Fetching a release: what it consists of, where it lies, and how it comes onto the disk whole.

A manifest declares the files of a release (`manifest`, `releases`); `download` brings one file over HTTP and goes on
where it broke off; `finding` recognizes a file that is already on disk; `unpack` opens archives without trusting them;
`fetch.get` puts these together.
"""
