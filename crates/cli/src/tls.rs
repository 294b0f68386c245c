//! TLS of `toolhost serve`: a certificate and its key from files, which are read again when they change.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use anyhow::Context;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use toolhost_server::http::Listener;

/// How long a client may take to agree on TLS.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// Clients that agree on TLS at once; further ones wait to be taken.
const HANDSHAKES_MAX: usize = 1024;
/// Those of one address; further ones are turned away, so that one that says nothing keeps out nobody but itself.
const HANDSHAKES_OF_ADDRESS_MAX: usize = 64;
/// How often it is looked whether the certificate has changed.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// The protocol that is spoken inside (RFC 7301).
const HTTP_1_1: &[u8] = b"http/1.1";

/// The files of a certificate.
#[derive(Debug, Clone)]
pub(crate) struct Certificate {
    /// The certificate, then those that lead to its authority, in PEM.
    pub(crate) chain: PathBuf,
    /// Its private key, in PEM.
    pub(crate) key: PathBuf,
}

impl Certificate {
    /// # Errors
    /// If a file cannot be read, holds no certificate or key, or the two do not belong together.
    fn acceptor(&self) -> anyhow::Result<TlsAcceptor> {
        let (chain, key) = (self.chain.display(), self.key.display());
        let certificates: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&self.chain)
            .and_then(Iterator::collect)
            .with_context(|| format!("the certificate {chain} cannot be read"))?;
        anyhow::ensure!(!certificates.is_empty(), "{chain} has no certificate in it");
        let private =
            PrivateKeyDer::from_pem_file(&self.key).with_context(|| format!("the private key {key} cannot be read"))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .context("TLS cannot be set up")?
            .with_no_client_auth()
            .with_single_cert(certificates, private)
            .with_context(|| format!("the private key {key} is not that of the certificate {chain}"))?;
        config.alpn_protocols = vec![HTTP_1_1.to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// When the files were last written; `None` where that cannot be told.
    fn written(&self) -> Option<(SystemTime, SystemTime)> {
        let of = |path: &PathBuf| path.metadata().and_then(|found| found.modified()).ok();
        Some((of(&self.chain)?, of(&self.key)?))
    }
}

/// A socket whose connections speak TLS. Agreeing on it takes a client as long as it likes, so it is done beside taking the next one.
pub(crate) struct TlsSocket {
    ready: mpsc::Receiver<(TlsStream<TcpStream>, IpAddr)>,
    address: SocketAddr,
    taking: JoinHandle<()>,
}

impl TlsSocket {
    /// # Errors
    /// If the address cannot be listened on, or the certificate does not hold.
    pub(crate) async fn bind(address: SocketAddr, certificate: Certificate) -> anyhow::Result<Self> {
        let acceptor = certificate.acceptor()?;
        let listener = TcpListener::bind(address).await.with_context(|| format!("{address} cannot be listened on"))?;
        let address = listener.local_addr()?;
        let (send, ready) = mpsc::channel(1);
        let taking = tokio::spawn(take(listener, certificate, acceptor, send));
        Ok(Self { ready, address, taking })
    }

    /// Where it listens: the port that was free, where none was named.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for TlsSocket {
    fn drop(&mut self) {
        self.taking.abort();
    }
}

impl Listener for TlsSocket {
    type Stream = TlsStream<TcpStream>;

    async fn accept(&mut self) -> std::io::Result<(Self::Stream, IpAddr)> {
        self.ready.recv().await.ok_or_else(|| std::io::Error::other("no connection is taken any more"))
    }
}

/// A client of an address that agrees on TLS.
struct Place {
    of_addresses: Arc<Mutex<HashMap<IpAddr, usize>>>,
    address: IpAddr,
}

impl Place {
    /// `None` if the address has as many as it may.
    fn take(of_addresses: &Arc<Mutex<HashMap<IpAddr, usize>>>, address: IpAddr) -> Option<Self> {
        let mut all = of_addresses.lock().unwrap_or_else(PoisonError::into_inner);
        let of_address = all.entry(address).or_default();
        if *of_address >= HANDSHAKES_OF_ADDRESS_MAX {
            return None;
        }
        *of_address += 1;
        Some(Self { of_addresses: Arc::clone(of_addresses), address })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut all = self.of_addresses.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(of_address) = all.get_mut(&self.address) {
            *of_address -= 1;
            if *of_address == 0 {
                all.remove(&self.address);
            }
        }
    }
}

/// Takes connections for ever, and hands on those that speak TLS.
async fn take(
    listener: TcpListener,
    certificate: Certificate,
    mut acceptor: TlsAcceptor,
    send: mpsc::Sender<(TlsStream<TcpStream>, IpAddr)>,
) {
    let handshakes = Arc::new(Semaphore::new(HANDSHAKES_MAX));
    let of_addresses: Arc<Mutex<HashMap<IpAddr, usize>>> = Arc::default();
    let mut written = certificate.written();
    let mut look = tokio::time::interval(LOOK_EVERY);
    loop {
        let taken = tokio::select! {
            taken = async {
                let permit = Arc::clone(&handshakes).acquire_owned().await.map_err(std::io::Error::other)?;
                let (stream, address) = listener.accept().await?;
                stream.set_nodelay(true)?;
                std::io::Result::Ok((stream, address.ip(), permit))
            } => taken,
            _ = look.tick() => {
                let now = certificate.written();
                if now.is_some() && now != written {
                    match certificate.acceptor() {
                        Ok(new) => (acceptor, written) = (new, now),
                        // One of the two files may be written and the other not yet.
                        Err(error) => tracing::warn!("the new certificate is not used: {error:#}"),
                    }
                }
                continue;
            }
        };
        let (stream, address, permit) = match taken {
            Ok(taken) => taken,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be taken");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let Some(place) = Place::take(&of_addresses, address) else {
            tracing::debug!(%address, "too many clients of one address agree on TLS");
            continue;
        };
        let (acceptor, send) = (acceptor.clone(), send.clone());
        tokio::spawn(async move {
            let agreed = tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await;
            drop((place, permit));
            match agreed {
                // Whoever received has ended with the server.
                Ok(Ok(stream)) => drop(send.send((stream, address)).await),
                Ok(Err(error)) => tracing::debug!(%error, "a client did not agree on TLS"),
                Err(_) => tracing::debug!("a client took too long to agree on TLS"),
            }
        });
    }
}
