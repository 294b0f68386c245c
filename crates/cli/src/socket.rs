//! The socket of `toolhost serve`.

use std::net::{IpAddr, SocketAddr};

use tokio::net::{TcpListener, TcpStream};
use toolhost_server::http::Listener;

pub(crate) struct Socket(TcpListener);

impl Socket {
    /// # Errors
    /// If the address cannot be listened on.
    pub(crate) async fn bind(address: SocketAddr) -> std::io::Result<Self> {
        Ok(Self(TcpListener::bind(address).await?))
    }

    /// Where it listens: the port that was free, where none was named.
    pub(crate) fn address(&self) -> std::io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

impl Listener for Socket {
    type Stream = TcpStream;

    async fn accept(&mut self) -> std::io::Result<(TcpStream, IpAddr)> {
        let (stream, address) = self.0.accept().await?;
        stream.set_nodelay(true)?;
        Ok((stream, address.ip()))
    }
}
