//! What programs that embed Toolhost rely on.

mod gate;
mod opening;
mod room;
mod service;
mod sessions;
