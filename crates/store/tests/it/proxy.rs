//! A network between a host and its server that loses what a test says.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What becomes of a COMMIT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// The server does it, and its answer is lost with the connection.
    Answer,
    /// It never arrives: both ends are closed.
    Request,
    /// It never arrives, and the server does not hear that the client has gone.
    RequestUnnoticed,
    /// The server does it, and nothing is heard of it: neither an answer nor an end of the connection.
    AnswerSilently,
    /// It never arrives, and neither end hears anything.
    RequestSilently,
}

/// The way to a server, by a port of its own.
pub(crate) struct Proxy {
    /// The database's URL by this way.
    pub(crate) url: String,
    orders: Arc<Orders>,
}

struct Orders {
    /// What happens to the next COMMIT.
    next: Mutex<Option<Loss>>,
    refuses: AtomicBool,
    /// As soon as that COMMIT is lost, nobody gets through any more.
    then_refuses: AtomicBool,
    /// Clients lose their connections; the server notices nothing.
    cut: watch::Sender<u32>,
    /// The server notices that those are gone.
    noticed: watch::Sender<u32>,
    /// Nothing that is sent on the connections there are arrives any more, and nobody hears of it.
    forgotten: watch::Sender<u32>,
}

impl Proxy {
    pub(crate) async fn before(url: &str) -> Self {
        let (head, rest) = url.split_once('@').unwrap();
        let (to, database) = rest.split_once('/').unwrap();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("{head}@{}/{database}", listener.local_addr().unwrap());
        let (refuses, then_refuses) = (AtomicBool::new(false), AtomicBool::new(false));
        let (cut, noticed, forgotten) = (watch::Sender::new(0), watch::Sender::new(0), watch::Sender::new(0));
        let orders = Arc::new(Orders { next: Mutex::default(), refuses, then_refuses, cut, noticed, forgotten });
        tokio::spawn(accept(listener, to.to_owned(), Arc::clone(&orders)));
        Self { url, orders }
    }

    pub(crate) fn lose_next(&self, loss: Loss) {
        *self.orders.next.lock().unwrap() = Some(loss);
    }

    /// As [`Proxy::lose_next`], and from then on nobody gets through.
    pub(crate) fn lose_next_and_refuse(&self, loss: Loss) {
        self.orders.then_refuses.store(true, Ordering::SeqCst);
        self.lose_next(loss);
    }

    /// Whether nobody gets through any more.
    pub(crate) fn refuse(&self, refuses: bool) {
        self.orders.refuses.store(refuses, Ordering::SeqCst);
    }

    /// All connections end for the client, and go on for the server.
    pub(crate) fn cut(&self) {
        self.orders.cut.send_modify(|cuts| *cuts += 1);
    }

    /// All connections go on for both ends, and carry nothing any more, as after a router has forgotten them.
    pub(crate) fn forget(&self) {
        self.orders.forgotten.send_modify(|times| *times += 1);
    }

    /// The server notices the connections that have ended.
    pub(crate) fn notice(&self) {
        self.orders.noticed.send_modify(|notices| *notices += 1);
    }
}

async fn accept(listener: TcpListener, to: String, orders: Arc<Orders>) {
    while let Ok((client, _)) = listener.accept().await {
        if orders.refuses.load(Ordering::SeqCst) {
            continue;
        }
        let Ok(server) = TcpStream::connect(&to).await else { continue };
        tokio::spawn(carry(client, server, Arc::clone(&orders)));
    }
}

async fn carry(mut client: TcpStream, mut server: TcpStream, orders: Arc<Orders>) {
    let (mut up, mut down) = (vec![0; 65536], vec![0; 65536]);
    let (mut cut, mut noticed) = (orders.cut.subscribe(), orders.noticed.subscribe());
    let mut forgotten = orders.forgotten.subscribe();
    loop {
        tokio::select! {
            read = client.read(&mut up) => {
                let Ok(count @ 1..) = read else { return };
                let sent = &up[..count];
                let is_commit = sent.starts_with(b"Q") && sent.windows(7).any(|part| part == b"COMMIT\0");
                let loss = if is_commit { orders.next.lock().unwrap().take() } else { None };
                if loss.is_some() && orders.then_refuses.swap(false, Ordering::SeqCst) {
                    orders.refuses.store(true, Ordering::SeqCst);
                }
                match loss {
                    None => if server.write_all(sent).await.is_err() { return },
                    Some(Loss::Answer) => {
                        server.write_all(sent).await.unwrap();
                        // Its answer is there, so it is done.
                        let _ = server.read(&mut down).await;
                        return;
                    }
                    Some(Loss::AnswerSilently) => {
                        server.write_all(sent).await.unwrap();
                        let _ = server.read(&mut down).await;
                        return swallow(client, server).await;
                    }
                    Some(Loss::RequestSilently) => return swallow(client, server).await,
                    Some(Loss::Request) => return,
                    Some(Loss::RequestUnnoticed) => {
                        drop(client);
                        let _ = noticed.changed().await;
                        return;
                    }
                }
            }
            read = server.read(&mut down) => {
                let Ok(count @ 1..) = read else { return };
                if client.write_all(&down[..count]).await.is_err() {
                    return;
                }
            }
            _ = cut.changed() => {
                drop(client);
                let _ = noticed.changed().await;
                return;
            }
            _ = forgotten.changed() => return swallow(client, server).await,
        }
    }
}

/// Takes what both ends send, and what becomes of them, and tells nobody.
async fn swallow(mut client: TcpStream, mut server: TcpStream) {
    let (mut nobody, mut either) = (tokio::io::sink(), tokio::io::sink());
    let _ = tokio::join!(tokio::io::copy(&mut client, &mut nobody), tokio::io::copy(&mut server, &mut either));
    // Held until the end of the test: an end would be heard.
    std::future::pending::<()>().await;
}
