//! The archive and its samples.
use std::io::{self, Read, SeekFrom};

use pleach_tree::{Fault, Location, ReadOptions};
use serde::Deserialize;
use zip::{CompressionMethod, ZipArchive};

use super::play::{self, Others};
use super::sample::Sample;
use crate::core::format::Format;
use crate::core::input::{Member, ReadSeek};
use crate::core::script::{Script, Spot};
use crate::core::shape::Shape;
use crate::{Conversion, HarnessError, Input};

/// How a log of inspect_ai is told from other files.
pub(crate) const FORMAT: Format =
    Format::new("inspect-ai", "an inspect_ai .eval log", is_log, convert)
        .with_archive()
        .with_least(is_log);

fn is_log(shape: &Shape) -> bool {
    shape.has_all(&["version", "status", "eval"]) && shape.kind("samples").is_some()
}

/// Methods of compression, which the zip crate knows by number only as it is built here.
const DEFLATE: u16 = 8;
const ZSTD: u16 = 93;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Header {
    eval: Eval,
    /// The samples of a log that is one document.
    samples: Vec<Sample>,
}

impl Header {
    fn version(&self) -> Option<String> {
        self.eval.packages.get("inspect_ai")?.as_str().map(str::to_owned)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Eval {
    packages: serde_json::Map<String, serde_json::Value>,
}

fn convert(input: &Input, options: ReadOptions) -> Result<Conversion, HarnessError> {
    let mut script = Script::new("inspect-ai", options);
    let (main, mut others) = (input.main(), Others::default());
    if pleach_tree::compression(&main.start(4)?) != Some("zip") {
        let file = script.draft.file(&main);
        let (logs, at) = main.document::<Header>(options, &mut script.draft.report)?;
        let spot = Spot { file, at };
        for log in logs {
            script.draft.header.harness_version = log.version();
            for sample in log.samples {
                play::sample(&mut script, sample, &spot, &mut others);
            }
        }
        others.tell(&mut script);
        return script.play();
    }
    let damaged = |error: zip::result::ZipError| {
        HarnessError::io(&main.name, io::Error::other(error.to_string()))
    };
    if !has_directory(&main)? {
        return Err(HarnessError::CutArchive { file: main.name.to_string(), bytes: main.size()? });
    }
    let mut archive = ZipArchive::new(main.seek()?).map_err(damaged)?;
    for at in 0..archive.len() {
        let name = archive
            .by_index_raw(at)
            .and_then(|entry| Ok(entry.name()?.into_owned()))
            .map_err(damaged)?;
        let sample = name.starts_with("samples/") && name.ends_with(".json");
        let start = name == "header.json" || name == "_journal/start.json";
        let wanted = sample || start && script.draft.header.harness_version.is_none();
        if !wanted {
            continue;
        }
        let Some(bytes) = entry(&mut archive, at, &main, &mut script, options).map_err(damaged)?
        else {
            continue;
        };
        let inner = main.inside(&name, bytes);
        if sample {
            let file = script.draft.file(&inner);
            let (samples, at) = inner.document::<Sample>(options, &mut script.draft.report)?;
            let spot = Spot { file, at };
            for sample in samples {
                play::sample(&mut script, sample, &spot, &mut others);
            }
        } else {
            let (headers, _) = inner.document::<Header>(options, &mut script.draft.report)?;
            script.draft.header.harness_version = headers.first().and_then(Header::version);
        }
    }
    others.tell(&mut script);
    script.play()
}

/// Whether the mark of an archive's directory is there, which stands at its end, behind nothing but
/// a comment.
fn has_directory(main: &Member) -> Result<bool, HarnessError> {
    const MARK: &[u8] = b"PK\x05\x06";
    const LONGEST: u64 = 22 + u16::MAX as u64;
    let io = |source| HarnessError::io(&main.name, source);
    let start = main.size()?.saturating_sub(LONGEST);
    let (mut archive, mut end) = (main.seek()?, Vec::new());
    archive.seek(SeekFrom::Start(start)).map_err(io)?;
    archive.take(LONGEST).read_to_end(&mut end).map_err(io)?;
    Ok(memchr::memmem::find(&end, MARK).is_some())
}

/// The text of an entry; none where it cannot be read, which is a fault.
fn entry(
    archive: &mut ZipArchive<Box<dyn ReadSeek>>,
    at: usize,
    main: &Member,
    script: &mut Script,
    options: ReadOptions,
) -> Result<Option<Vec<u8>>, zip::result::ZipError> {
    let raw = archive.by_index_raw(at)?;
    let name = raw.name()?.into_owned();
    let place = Location::line(&main.name, 1).key(name.clone());
    let method = raw.compression();
    let limit = options.max_line_bytes as u64;
    let mut bytes = Vec::new();
    // What an entry says of its size is not trusted: it is read up to the limit and one byte
    // beyond.
    let read = match method {
        CompressionMethod::Stored => raw.take(limit + 1).read_to_end(&mut bytes),
        method if number(method) == DEFLATE => {
            flate2::read::DeflateDecoder::new(raw).take(limit + 1).read_to_end(&mut bytes)
        }
        method if number(method) == ZSTD => zstd::stream::read::Decoder::new(raw)
            .and_then(|decoder| decoder.take(limit + 1).read_to_end(&mut bytes)),
        method => {
            let message = format!(
                "the entry {name} is compressed by {method}, which is not read; it is left out"
            );
            script.draft.fault(&place, &name, "unknown-compression", message);
            return Ok(None);
        }
    };
    if let Err(error) = read {
        let message = format!(
            "the entry {name} breaks off behind {} bytes ({error}); it is left out",
            bytes.len()
        );
        script.draft.fault(&place, &name, "entry-damaged", message);
        return Ok(None);
    }
    if bytes.len() as u64 > limit {
        script.draft.report.fault(place, Fault::LineTooLong { limit: options.max_line_bytes });
        return Ok(None);
    }
    Ok(Some(bytes))
}

#[allow(deprecated, reason = "the number of a method that is not built in is had in no other way")]
fn number(method: CompressionMethod) -> u16 {
    method.to_u16()
}
