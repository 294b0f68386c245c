"""A server of fastmcp's with one tool that reads a file: PORT."""

import sys

from fastmcp import FastMCP

server = FastMCP("files")


@server.tool
def read_text_file(path: str) -> str:
    """Reads a file."""
    with open(path, encoding="utf-8") as file:
        return file.read()


server.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False, log_level="ERROR")
