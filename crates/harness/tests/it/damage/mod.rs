//! Ways in which the files of harnesses go wrong.
use std::path::Path;

use proptest::prelude::*;
use proptest::sample::Index;

pub(crate) fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)).unwrap()
}

/// One way to spoil a file; lines are the unit in which real files go wrong.
#[derive(Debug, Clone)]
pub(crate) enum Damage {
    Cut(Index),
    Flip(Index, u8),
    DropLine(Index),
    SwapLines(Index, Index),
    RepeatLine(Index, Index),
    Splice(&'static str, Index),
    /// Gives the value of one string the place of another one's, which makes dangling parents,
    /// circles and repeated ids.
    SwapStrings(Index, Index),
}

/// Damage to one of these files.
pub(crate) fn damage(fixtures: &'static [&'static str]) -> impl Strategy<Value = Damage> {
    let index = any::<Index>;
    prop_oneof![
        index().prop_map(Damage::Cut),
        (index(), any::<u8>()).prop_map(|(at, byte)| Damage::Flip(at, byte)),
        index().prop_map(Damage::DropLine),
        (index(), index()).prop_map(|(a, b)| Damage::SwapLines(a, b)),
        (index(), index()).prop_map(|(a, b)| Damage::RepeatLine(a, b)),
        (prop::sample::select(fixtures), index()).prop_map(|(file, at)| Damage::Splice(file, at)),
        (index(), index()).prop_map(|(a, b)| Damage::SwapStrings(a, b)),
    ]
}

pub(crate) fn apply(text: Vec<u8>, damage: &Damage) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> =
        text.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
    if lines.is_empty() {
        return text;
    }
    match damage {
        Damage::Cut(at) => return text[..at.index(text.len())].to_vec(),
        Damage::Flip(at, byte) => {
            let mut text = text;
            let at = at.index(text.len());
            text[at] ^= byte;
            return text;
        }
        Damage::DropLine(at) => {
            lines.remove(at.index(lines.len()));
        }
        Damage::SwapLines(a, b) => {
            let (a, b) = (a.index(lines.len()), b.index(lines.len()));
            lines.swap(a, b);
        }
        Damage::RepeatLine(a, b) => {
            let line = lines[a.index(lines.len())].clone();
            lines.insert(b.index(lines.len()), line);
        }
        Damage::Splice(file, at) => {
            let at = at.index(lines.len());
            lines.splice(at..at, [fixture(file)]);
        }
        Damage::SwapStrings(a, b) => return swap_strings(text, *a, *b),
    }
    lines.concat()
}

fn swap_strings(text: Vec<u8>, a: Index, b: Index) -> Vec<u8> {
    let mut pieces: Vec<Vec<u8>> = text.split(|&byte| byte == b'"').map(<[u8]>::to_vec).collect();
    let values: Vec<usize> = (1..pieces.len())
        .step_by(2)
        .filter(|&at| pieces.get(at + 1).is_some_and(|next| next != b":"))
        .collect();
    if values.is_empty() {
        return text;
    }
    let value = pieces[values[a.index(values.len())]].clone();
    pieces[values[b.index(values.len())]] = value;
    pieces.join(&b'"')
}
