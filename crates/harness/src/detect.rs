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
use pleach_tree::{Diagnostic, Fault, Location, ReadOptions, Record, Severity};

use crate::core::format::Format;
use crate::core::input::Member;
use crate::core::shape::{LOOK_AT, Shape, shapes};
use crate::unread::Unread;
use crate::{Conversion, HarnessError, Input};

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
    /// Token logs of reinforcement learning: prime-rl and verifiers, slime, verl, NeMo Gym,
    /// Switchyard, rLLM, TRL.
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
    /// Trajectories of SWE-agent.
    SweAgent => swe_agent;
    /// Trajectories of mini-SWE-agent.
    MiniSweAgent => mini_swe_agent;
    /// Conversations as lists of messages.
    Messages => messages;
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

/// Tells from the first lines of a file, never from its name, which harness wrote it.
///
/// # Errors
/// [`HarnessError::Io`], [`HarnessError::Empty`], [`HarnessError::Compressed`],
/// [`HarnessError::Utf16`], [`HarnessError::Unread`] where the file is of a program that is known
/// and not read, or [`HarnessError::UnknownHarness`] where no line is one that an adapter knows.
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
    match look(&start) {
        Some(Look::Read(harness)) => Ok(harness),
        Some(Look::Unread(unread)) => Err(unread.error(file())),
        None => {
            Err(strange(input, &start)
                .unwrap_or_else(|| HarnessError::UnknownHarness { file: file() }))
        }
    }
}

/// Whose a file is.
enum Look {
    Read(Harness),
    Unread(&'static Unread),
}

/// Tells from the first bytes of a file whose it is.
fn look(start: &[u8]) -> Option<Look> {
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    if pleach_tree::compression(start) == Some("zip") {
        let archive = Harness::ALL.iter().copied().find(|harness| harness.format().archive);
        return archive.map(Look::Read);
    }
    let told = |shape: Shape| {
        let read = || Harness::ALL.iter().copied().find(|harness| (harness.format().mark)(&shape));
        Unread::of(&shape).map(Look::Unread).or_else(|| read().map(Look::Read))
    };
    shapes(start).find_map(told).or_else(|| Unread::of_text(start).map(Look::Unread))
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
    match look(start)? {
        Look::Read(harness) => Some(harness),
        Look::Unread(_) => None,
    }
}

/// The format of a file beside the one that is read, where its start tells it.
pub(crate) fn told(member: &Member) -> Result<Option<Harness>, HarnessError> {
    Ok(detect_bytes(&member.start(LOOK_AT)?))
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
    let Some(harness) = harness else { return read(input, detect(input)?, options) };
    let format = harness.format();
    if let Some(least) = format.least {
        has_shape(input, harness, least)?;
    }
    let conversion = match read(input, harness, options) {
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

/// Converts a file of a format; one whose records go over several lines is an error of its own, as
/// the faults of its lines say nothing of that.
fn read(input: &Input, harness: Harness, options: ReadOptions) -> Result<Conversion, HarnessError> {
    let conversion = (harness.format().convert)(input, options);
    let report = match &conversion {
        Ok(conversion) => &conversion.report,
        Err(HarnessError::Rejected(report)) => report,
        Err(_) => return conversion,
    };
    let main = input.main();
    let breaks = |found: &Diagnostic| {
        found.location.file == main.name
            && matches!(found.fault, Fault::Json { .. } | Fault::TruncatedLine { .. })
    };
    if report.diagnostics.iter().any(breaks) && !input.is_folder() && main.is_indented()? {
        return Err(HarnessError::Indented { file: main.name.to_string(), harness });
    }
    conversion.map(|conversion| with_calls(conversion, Location::line(&main.name, 1)))
}

/// The conversion, with a warning where it holds no call: that leaves nothing to train on, and must
/// not pass for a session that was read well.
fn with_calls(mut conversion: Conversion, at: Location) -> Conversion {
    let is_call = |record: &Record| matches!(record, Record::Generation(_));
    if conversion.records.iter().any(is_call) {
        return conversion;
    }
    let is_segment = |record: &&Record| matches!(record, Record::Segment(_));
    let segments = conversion.records.iter().filter(is_segment).count();
    let report = &mut conversion.report;
    let repairs = report.of(Severity::Repaired).count();
    let of = |code: &str| {
        let is = |found: &&Diagnostic| matches!(found.fault, Fault::Harness { code: own, .. } if own == code);
        report.diagnostics.iter().filter(is).count()
    };
    let why = match (repairs, of("failed-call"), of("copied-history")) {
        (0, 0, 0) if segments == 0 => "nothing in it stands in a context".to_owned(),
        (0, 0, 0) => format!("its {segments} segments are context that no model answered"),
        (0, 0, _) => "all that it has are those of a session beside it".to_owned(),
        (0, failed, _) => format!("the {failed} requests in it have no answer"),
        (repairs, ..) => format!("what it had may be among what was left out ({repairs} repairs)"),
    };
    let message = format!("the file holds no call of a model, so nothing can be trained on: {why}");
    report.warn(at, Fault::Harness { code: "no-calls", message });
    conversion
}

/// That a file was named as one format and is of another one, where that is so: faults of lines
/// that were never meant to be of the format that is named say nothing to the one who named it.
pub fn misnamed(input: &Input, harness: Harness) -> Option<HarnessError> {
    match detect(input) {
        Err(error @ HarnessError::Unread { .. }) => return Some(error),
        found => found.ok()?,
    };
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
    let (found, strange) = match look(text) {
        Some(Look::Read(found)) => (Some(found), None),
        Some(Look::Unread(unread)) => (None, Some(unread.error(input.name().to_string()))),
        None => (None, strange(input, text)),
    };
    Err(strange.unwrap_or_else(|| HarnessError::OtherFormat {
        file: input.name().to_string(),
        harness,
        found,
    }))
}
