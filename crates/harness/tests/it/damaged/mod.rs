//! Compressed files that are damaged.
use std::io::Write;

/// A text as two of them: one of which nothing can be read, and one that is cut off behind its last
/// line.
pub(crate) fn damaged(text: &[u8]) -> [Vec<u8>; 2] {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(text).unwrap();
    let cut = gzip.finish().unwrap();
    [b"\x1f\x8b\x08\0\0\0\0\0\0\x03 no stream".to_vec(), cut[..cut.len() - 9].to_vec()]
}
