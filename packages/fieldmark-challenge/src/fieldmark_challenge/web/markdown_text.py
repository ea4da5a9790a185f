"""What people write, as HTML that can do no harm: Markdown, sanitized by a library that does nothing else."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markupsafe import Markup, escape

TAGS = {
    *("p", "br", "hr", "h3", "h4", "h5", "ul", "ol", "li", "blockquote", "pre", "code", "em", "strong", "a", "img"),
    *("div", "table", "thead", "tbody", "tr", "th", "td"),
}
ATTRIBUTES = {"a": {"href", "title"}, "img": {"src", "alt"}}
SCHEMES = {"http", "https", "mailto"}
# Titles of pages are h1 and h2 already.
LEVELS = {"h1": "h3", "h2": "h3", "h3": "h4", "h4": "h5", "h5": "h5", "h6": "h5"}
PICTURE = re.compile(r'<img src="([^"]*)"')
# What may be wider than a phone scrolls by itself, also by keyboard: tables lie in a div, which people cannot write.
SCROLLING = {
    "div": {"class": "scroll", "role": "group", "aria-label": "Table", "tabindex": "0"},
    "pre": {"tabindex": "0"},
}


def prose(text: str, pictures: Mapping[str, str] | None = None) -> Markup:
    r"""Markdown as HTML: paragraphs, lists, headings, tables, links and pictures; HTML of its own stays text.

    Args:
        text: What was written.
        pictures: The pictures that may be shown, by the names that the text has for them, as data URIs. Those of other
            hosts become links: nothing is fetched from elsewhere.

    >>> print(prose("## Aim\n\nName the <i>fungus</i>.\n- one\n- two"))
    <h3>Aim</h3>
    <p>Name the &lt;i&gt;fungus&lt;/i&gt;.</p>
    <ul>
    <li>one</li>
    <li>two</li>
    </ul>
    """
    shown = dict(pictures or {})
    clean = nh3.clean(
        _markdown().render(text, {"pictures": shown}),
        tags=TAGS,
        attributes=ATTRIBUTES,
        set_tag_attribute_values=SCROLLING,
        url_schemes=SCHEMES,
        link_rel="noopener noreferrer nofollow",
    )
    return Markup(PICTURE.sub(lambda found: f'<img src="{escape(shown.get(found[1], ""))}"', clean).strip())


def pictures_in(text: str) -> list[str]:
    """The names of the pictures that a text shows.

    >>> pictures_in("![Map](map.png) and ![far](https://example.org/x.png)")
    ['map.png', 'https://example.org/x.png']
    """
    inline = (token for token in _markdown().parse(text) if token.type == "inline")
    children = (child for token in inline for child in token.children or ())
    return [str(child.attrGet("src")) for child in children if child.type == "image"]


@cache
def _markdown() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("image", _picture)
    parser.add_render_rule("heading_open", _heading)
    parser.add_render_rule("heading_close", _heading)
    parser.add_render_rule("table_open", lambda *_: "<div><table>\n")
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    return parser


def _picture(renderer: Any, tokens: Sequence[Any], index: int, options: Any, env: Mapping[str, Any]) -> str:
    source, told = str(tokens[index].attrGet("src")), escape(tokens[index].content)
    if source in env.get("pictures", {}):
        return f'<img src="{escape(source)}" alt="{told}">'
    if source.startswith(("http://", "https://")):
        return f'<a href="{escape(source)}">{told or escape(source)}</a>'
    return str(told)


def _heading(renderer: Any, tokens: Sequence[Any], index: int, options: Any, env: Any) -> str:
    tag = LEVELS[tokens[index].tag]
    return f"<{tag}>" if tokens[index].nesting > 0 else f"</{tag}>\n"
