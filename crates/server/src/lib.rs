//! The doors of a host: MCP now; HTTP and the workbench stand beside it when they come.
//!
//! A door turns what arrives into a call, hands it to the gate, and renders the outcome. It refuses to know which tools
//! there are, and SQL. Start with [`mcp::serve_stdio`].

pub mod mcp;
