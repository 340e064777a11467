//! Standard input as a stream.

use std::io::Read as _;

use tokio::io::{AsyncWriteExt as _, BufReader, DuplexStream};

const BUFFER: usize = 64 * 1024;

/// Reads standard input in a separate thread: waiting for a silent client must not keep the process from exiting.
pub(crate) fn standard_input() -> BufReader<DuplexStream> {
    let (mut to, from) = tokio::io::duplex(BUFFER);
    let runtime = tokio::runtime::Handle::current();
    std::thread::spawn(move || {
        let mut bytes = [0; BUFFER];
        loop {
            match std::io::stdin().read(&mut bytes) {
                Ok(0) => return,
                Ok(read) => {
                    let read = bytes.get(..read).unwrap_or_default();
                    if runtime.block_on(to.write_all(read)).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    });
    BufReader::new(from)
}
