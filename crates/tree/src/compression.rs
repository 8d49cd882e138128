/// The compression of a file, by the bytes that it starts with.
pub fn compression(start: &[u8]) -> Option<&'static str> {
    const MAGIC: [(&[u8], &str); 5] = [
        (b"\x1f\x8b", "gzip"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"BZh", "bzip2"),
        (b"\xfd7zXZ", "xz"),
        (b"PK\x03\x04", "zip"),
    ];
    MAGIC.iter().find(|(magic, _)| start.starts_with(magic)).map(|(_, kind)| *kind)
}
