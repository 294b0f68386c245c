//! The doors of a host: MCP over standard input and output, and HTTP with MCP and a JSON API; the workbench stands beside them when it comes.
//!
//! A door turns what arrives into a call, hands it to the gate, and renders the outcome. It refuses to know which tools
//! there are, and SQL. Start with [`mcp::serve_stdio`] and [`http::serve`].

pub mod http;
pub mod mcp;
mod origin;
