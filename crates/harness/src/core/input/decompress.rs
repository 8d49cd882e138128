//! Streams of bytes out of compressed ones.
use std::io::{self, BufRead, BufReader, Read};

/// The bytes of a file, decompressed `buffer` of them at a time where its first bytes say gzip or
/// zstd, as they are elsewhere.
pub(super) fn decompressed(
    mut reader: impl BufRead + Send + 'static,
    buffer: usize,
) -> io::Result<Box<dyn BufRead + Send>> {
    let kind = pleach_tree::compression(reader.fill_buf()?);
    Ok(match kind {
        Some(kind @ "gzip") => named(kind, flate2::bufread::MultiGzDecoder::new(reader), buffer),
        Some(kind @ "zstd") => {
            named(kind, zstd::stream::read::Decoder::with_buffer(reader)?, buffer)
        }
        _ => Box::new(reader),
    })
}

fn named(
    kind: &'static str,
    reader: impl Read + Send + 'static,
    buffer: usize,
) -> Box<dyn BufRead + Send> {
    Box::new(BufReader::with_capacity(buffer, Decompressed { kind, reader, read: 0 }))
}

/// A decoder whose errors say how far it came.
struct Decompressed<R> {
    kind: &'static str,
    reader: R,
    read: u64,
}

/// Why a compressed stream does not go on: the error that its reader gives.
#[derive(Debug, thiserror::Error)]
#[error("its {kind} stream is damaged behind {read} bytes of text ({error})")]
pub(crate) struct Damage {
    /// The compression, which is the name of its tool too.
    pub(crate) kind: &'static str,
    read: u64,
    error: io::Error,
}

impl<R: Read> Read for Decompressed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (kind, read) = (self.kind, self.read);
        let count = self.reader.read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => error,
            kept => io::Error::new(kept, Damage { kind, read, error }),
        })?;
        self.read += count as u64;
        Ok(count)
    }
}
