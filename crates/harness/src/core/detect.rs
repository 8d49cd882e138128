//! Which program wrote a file: one table, one row a format.
//!
//! # A further format
//! 1. One module (a file, or a folder with files under 300 lines) that exports
//!    `pub(crate) const FORMAT: Format`. Its `mark` says of the [`Shape`] of one line, or of one
//!    document, that this harness wrote it; it must not hold for another harness's lines, which the
//!    test over all fixtures checks. `with_folder` is for sessions that are folders, `with_archive`
//!    for zip files.
//! 2. One line in `formats!` below: the variant and the module. Order decides where two marks hold.
//! 3. Its `convert` reads through [`Input`] (`main().open()` with `JsonLines`, `main().document()`,
//!    `members()`, `beside()`), keeps what it finds in a [`Draft`](crate::core::draft::Draft), writes
//!    records through its `ledger`, and ends with `finish`.
use pleach_tree::{ReadOptions, Record, Report};

use crate::core::input::Member;
use crate::core::shape::Shape;
use crate::core::usage::UsageCheck;
use crate::{HarnessError, Input};

/// A row of the table: how a format is known and read.
pub(crate) struct Format {
    /// The name that `--from` takes.
    name: &'static str,
    /// What a user would call such a file, with an article where it needs one.
    title: &'static str,
    /// Whether a line or a document is of this format.
    mark: fn(&Shape) -> bool,
    /// Whether a folder is one session of this format.
    folder: fn(&Input) -> Result<bool, HarnessError>,
    /// Whether a zip file is one.
    archive: bool,
    /// What a line or a document that is named as this format must have at least, where the adapter
    /// itself would take any object.
    least: Option<fn(&Shape) -> bool>,
    convert: fn(&Input, ReadOptions) -> Result<Conversion, HarnessError>,
}

impl Format {
    /// A format of single files.
    pub(crate) const fn new(
        name: &'static str,
        title: &'static str,
        mark: fn(&Shape) -> bool,
        convert: fn(&Input, ReadOptions) -> Result<Conversion, HarnessError>,
    ) -> Self {
        Self { name, title, mark, folder: |_| Ok(false), archive: false, least: None, convert }
    }

    /// The same format, whose sessions can be folders.
    pub(crate) const fn with_folder(
        self,
        folder: fn(&Input) -> Result<bool, HarnessError>,
    ) -> Self {
        Self { folder, ..self }
    }

    /// The same format, whose files can be zip archives.
    pub(crate) const fn with_archive(self) -> Self {
        Self { archive: true, ..self }
    }

    /// The same format, of which only files with a value of such a shape are read.
    pub(crate) const fn with_least(self, least: fn(&Shape) -> bool) -> Self {
        Self { least: Some(least), ..self }
    }
}

macro_rules! formats {
    ($($(#[doc = $doc:literal])+ $variant:ident => $module:ident;)+) => {
        /// Which program wrote a file.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Harness {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Harness {
            /// Every format that is read, in the order in which a file is held against them.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            const fn format(self) -> &'static Format {
                match self { $(Self::$variant => &crate::formats::$module::FORMAT,)+ }
            }
        }
    };
}

formats! {
    /// Eviction records themselves.
    Records => records;
    /// Rollout files of Codex CLI.
    Codex => codex;
    /// Session files of Pi and OpenClaw.
    Pi => pi;
    /// Session files of Gemini CLI.
    GeminiCli => gemini_cli;
    /// Session files of Qwen Code.
    QwenCode => qwen_code;
    /// Event logs of the OpenHands SDK.
    OpenHands => openhands;
    /// Logs of inspect_ai.
    InspectAi => inspect_ai;
    /// Sessions of OpenCode.
    OpenCode => opencode;
    /// Session files of Claude Code.
    ClaudeCode => claude_code;
    /// Token logs of reinforcement learning: prime-rl and verifiers, slime, verl.
    Rl => rl;
    /// Logs of requests to the APIs of OpenAI and Anthropic.
    Requests => requests;
    /// Trajectories in the Agent Trajectory Interchange Format.
    Atif => atif;
    /// Rollouts of MemexRL.
    MemexRl => memexrl;
    /// Runs of TC-RAG.
    TcRag => tcrag;
    /// Runs of AgentFold.
    AgentFold => agentfold;
}

impl Harness {
    /// The name that [`Harness::named`] takes.
    pub fn name(self) -> &'static str {
        self.format().name
    }

    /// What such a file is called in messages.
    pub fn title(self) -> &'static str {
        self.format().title
    }

    /// The format of a name.
    ///
    /// # Errors
    /// [`HarnessError::UnknownName`].
    pub fn named(name: &str) -> Result<Self, HarnessError> {
        let found = Self::ALL.iter().copied().find(|harness| harness.name() == name);
        found.ok_or_else(|| HarnessError::UnknownName { name: name.into() })
    }
}

/// What a file of any harness gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversion {
    /// The records, a header first.
    pub records: Vec<Record>,
    /// What was found on the way; it holds no errors.
    pub report: Report,
    /// Reconstructed requests against recorded usage, where the harness records it.
    pub usage: Option<UsageCheck>,
}

/// How much of a file is looked at.
const LOOK_AT: u64 = 4 << 20;

/// Tells from the first lines of a file, never from its name, which harness wrote it.
///
/// # Errors
/// [`HarnessError::Io`], [`HarnessError::Empty`], [`HarnessError::Compressed`],
/// [`HarnessError::Utf16`], or [`HarnessError::UnknownHarness`] where no line is one that an
/// adapter knows.
pub fn detect(input: &Input) -> Result<Harness, HarnessError> {
    let file = || input.name().to_string();
    if input.is_folder() {
        for &harness in Harness::ALL {
            if (harness.format().folder)(input)? {
                return Ok(harness);
            }
        }
        return Err(HarnessError::Folder { file: file() });
    }
    let start = input.main().start(LOOK_AT)?;
    detect_bytes(&start).ok_or_else(|| {
        strange(input, &start).unwrap_or_else(|| HarnessError::UnknownHarness { file: file() })
    })
}

/// Why a file is of no format at all, where its start says so.
fn strange(input: &Input, start: &[u8]) -> Option<HarnessError> {
    let file = input.name().to_string();
    let wide = [&b"\xff\xfe"[..], b"\xfe\xff", b"{\0", b"\0{", b"[\0", b"\0["]
        .iter()
        .any(|first| start.starts_with(first));
    match pleach_tree::compression(start) {
        _ if start.iter().all(u8::is_ascii_whitespace) => Some(HarnessError::Empty { file }),
        _ if wide => Some(HarnessError::Utf16 { file }),
        kind => kind.map(|kind| HarnessError::Compressed { file, kind }),
    }
}

/// Tells from the first bytes of a file, decompressed, which harness wrote it.
pub fn detect_bytes(start: &[u8]) -> Option<Harness> {
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    if pleach_tree::compression(start) == Some("zip") {
        return Harness::ALL.iter().copied().find(|harness| harness.format().archive);
    }
    shapes(start).find_map(|shape| {
        Harness::ALL.iter().copied().find(|harness| (harness.format().mark)(&shape))
    })
}

/// The format of a file beside the one that is read, where its start tells it.
pub(crate) fn told(member: &Member) -> Result<Option<Harness>, HarnessError> {
    Ok(detect_bytes(&member.start(LOOK_AT)?))
}

/// Whether a file is of a format, by its content, for formats whose sessions are folders.
pub(crate) fn is_of(member: &Member, mark: fn(&Shape) -> bool) -> Result<bool, HarnessError> {
    Ok(shapes(&member.start(1 << 16)?).any(|shape| mark(&shape)))
}

/// The shape of the first value in a file that has one.
pub(crate) fn first_shape(member: &Member) -> Result<Option<Shape>, HarnessError> {
    Ok(shapes(&member.start(1 << 16)?).next())
}

/// The shape of every line; one that goes on over the next lines, as in an indented document,
/// counts with them.
fn shapes(start: &[u8]) -> impl Iterator<Item = Shape> {
    /// How often a line may be taken for the start of something longer.
    const LONGER: usize = 3;
    let (mut at, mut longer) = (0, 0);
    std::iter::from_fn(move || {
        loop {
            let rest = start.get(at..).filter(|rest| !rest.is_empty())?;
            let line = &rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())];
            at += line.len() + 1;
            if !line.trim_ascii_start().starts_with(b"{")
                && !line.trim_ascii_start().starts_with(b"[")
            {
                continue;
            }
            let (shape, whole) = Shape::of(line);
            if whole.is_err_and(|error| error.is_eof())
                && line.len() < rest.len()
                && longer < LONGER
            {
                longer += 1;
                return Some(Shape::of(rest).0);
            }
            return Some(shape);
        }
    })
}

/// Converts a file or folder of a known harness to eviction records.
///
/// # Errors
/// As [`convert_from`].
pub fn convert(
    path: impl AsRef<std::path::Path>,
    options: ReadOptions,
) -> Result<Conversion, HarnessError> {
    convert_from(&Input::open(path)?, None, options)
}

/// Converts an input to eviction records, as `harness` wrote it, or as [`detect`] says where none
/// is given.
///
/// # Errors
/// As [`detect`]; [`HarnessError::Rejected`] with every fault of a file that is damaged, under
/// [`ReadOptions::LENIENT`] only with those that cannot be repaired; and
/// [`HarnessError::OtherFormat`] where nothing of a file is of the format that is given.
pub fn convert_from(
    input: &Input,
    harness: Option<Harness>,
    options: ReadOptions,
) -> Result<Conversion, HarnessError> {
    let Some(harness) = harness else { return (detect(input)?.format().convert)(input, options) };
    let format = harness.format();
    if let Some(least) = format.least {
        has_shape(input, harness, least)?;
    }
    let conversion = match (format.convert)(input, options) {
        Err(rejected @ HarnessError::Rejected(_)) => {
            return Err(misnamed(input, harness).unwrap_or(rejected));
        }
        conversion => conversion?,
    };
    if !conversion.records.iter().any(|record| matches!(record, Record::Generation(_))) {
        has_shape(input, harness, format.mark)?;
    }
    Ok(conversion)
}

/// That a file was named as one format and is of another one, where that is so: faults of lines
/// that were never meant to be of the format that is named say nothing to the one who named it.
pub fn misnamed(input: &Input, harness: Harness) -> Option<HarnessError> {
    detect(input).ok()?;
    has_shape(input, harness, harness.format().mark).err()
}

/// An error where no value in the start of a file has the shape of the format that the file was
/// named as.
fn has_shape(
    input: &Input,
    harness: Harness,
    mark: fn(&Shape) -> bool,
) -> Result<(), HarnessError> {
    if input.is_folder() {
        return Ok(());
    }
    let start = input.main().start(LOOK_AT)?;
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&start);
    let archive = harness.format().archive && pleach_tree::compression(text) == Some("zip");
    if archive || shapes(text).any(|shape| mark(&shape)) {
        return Ok(());
    }
    let found = detect_bytes(text);
    let strange = if found.is_none() { strange(input, text) } else { None };
    Err(strange.unwrap_or_else(|| HarnessError::OtherFormat {
        file: input.name().to_string(),
        harness,
        found,
    }))
}
