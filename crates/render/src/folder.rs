use std::path::Path;

use pleach_tree::{BranchTree, TokenizerIdentity};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::encode::Encoder;
use super::rewrite::{Rendered, rewrite};
use super::template::hex;
use super::{ChatTemplate, RenderError};

/// A tokenizer and a chat template, which make token-level records of message-level ones.
///
/// ```
/// use pleach_render::Renderer;
/// use pleach_tree::{BranchTree, GenerationId, ReadOptions};
/// let records = r#"{"t":"header","version":1,"harness":"example","fidelity":"message"}
/// {"t":"segment","id":0,"role":"user","origin":"human","text":"hi"}
/// {"t":"append","context":0,"from":null,"segments":[0]}
/// {"t":"segment","id":1,"role":"assistant","origin":"policy","text":"ho"}
/// {"t":"generation","id":0,"context":0,"output":[1]}
/// "#;
/// let (tree, _) = BranchTree::read(records.as_bytes(), "example.jsonl", ReadOptions::STRICT)?;
/// let rendered = Renderer::bytes().render(&tree)?.ok_or("has tokens already")?;
/// let (tree, _) = BranchTree::from_records(rendered.records, "rendered", ReadOptions::STRICT)?;
/// let view = tree.view(GenerationId(0)).ok_or("no generation")?;
/// let text = |ids: &[u32]| ids.iter().map(|&id| u8::try_from(id).map_or('|', char::from)).collect::<String>();
/// assert_eq!(text(&view.tokens()), "|user\nhi|\n|assistant\nho");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Renderer {
    encoder: Encoder,
    template: ChatTemplate,
    special: Vec<(String, String)>,
    identity: TokenizerIdentity,
    notes: Vec<String>,
}

impl Renderer {
    /// Bytes as tokens and the built-in ChatML template, for when no tokenizer is at hand.
    pub fn bytes() -> Self {
        Self::new(Encoder::bytes(), ChatTemplate::chatml(), "bytes".into(), None)
    }

    /// The tokenizer and the chat template of a Hugging Face folder, or of the folder in which
    /// `path`, a `tokenizer.json`, lies.
    ///
    /// The template is `chat_template.jinja`, else `chat_template` in `tokenizer_config.json` or
    /// `chat_template.json`, else the built-in ChatML, which is noted.
    ///
    /// # Errors
    /// A file that cannot be read, or that is not what it should be.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, RenderError> {
        let path = path.as_ref();
        let file = if path.is_dir() { path.join("tokenizer.json") } else { path.to_owned() };
        let folder = file.parent().unwrap_or(Path::new(""));
        let json = read(&file)?;
        let refused =
            |message: String| RenderError::Tokenizer { file: file.display().to_string(), message };
        let encoder = Encoder::hugging_face(&json).map_err(refused)?;
        let config = Config::open(folder)?;
        let (template, missing) = match config.template(folder)? {
            Some(template) => (template, None),
            None => (
                ChatTemplate::chatml(),
                Some(format!("{} has no chat template: the built-in ChatML is used", config.name)),
            ),
        };
        let mut renderer =
            Self::new(encoder, template, config.name.clone(), Some(hex(&Sha256::digest(&json))));
        renderer.notes.extend(missing);
        renderer.special = config.special;
        renderer.identity.vocab_size = renderer.identity.vocab_size.max(config.vocab_size);
        Ok(renderer)
    }

    /// The same tokenizer with the chat template in a file of its own, which sees the tokenizer's
    /// own special tokens.
    ///
    /// # Errors
    /// A file that cannot be read, or that is not a template.
    pub fn with_template(mut self, path: impl AsRef<Path>) -> Result<Self, RenderError> {
        let path = path.as_ref();
        self.template =
            ChatTemplate::new(&template_source(path)?, &self.special, &path.display().to_string())?;
        self.identity.chat_template_sha256 = Some(self.template.sha256().to_owned());
        self.notes.clear();
        Ok(self)
    }

    /// The same with `date`, as `2025-12-31`, for templates that print the day; without it that is
    /// today.
    ///
    /// # Errors
    /// [`RenderError::Date`].
    pub fn on_date(mut self, date: &str) -> Result<Self, RenderError> {
        let day = date.parse().map_err(|_| RenderError::Date { date: date.into() })?;
        self.template.set_date(day);
        Ok(self)
    }

    /// What the token ids of rendered records belong to.
    pub fn identity(&self) -> &TokenizerIdentity {
        &self.identity
    }

    /// The chat template.
    pub fn template(&self) -> &ChatTemplate {
        &self.template
    }

    /// The ids of a text, special tokens in it recognised, none added.
    ///
    /// # Errors
    /// [`RenderError::Encode`].
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, RenderError> {
        Ok(self.encoder.whole(text)?.ids)
    }

    /// The records of a tree with tokens; `None` where every segment has tokens already.
    ///
    /// What a generation's context holds is, id for id, what the template makes of its messages. A
    /// token belongs to the segment in whose text it starts.
    ///
    /// # Errors
    /// A generation whose messages the template refuses, text that is not there, a tool call that
    /// is not one.
    pub fn render(&self, tree: &BranchTree) -> Result<Option<Rendered>, RenderError> {
        if tree.first_without_tokens().is_none() {
            return Ok(None);
        }
        let mut rendered = rewrite(tree, &self.template, &self.encoder, &self.identity)?;
        rendered.notes.splice(0..0, self.notes.iter().cloned());
        Ok(Some(rendered))
    }

    fn new(encoder: Encoder, template: ChatTemplate, id: String, sha256: Option<String>) -> Self {
        let identity = TokenizerIdentity {
            id,
            sha256,
            chat_template_sha256: Some(template.sha256().to_owned()),
            vocab_size: Some(encoder.vocab_size()),
            ..TokenizerIdentity::default()
        };
        Self { encoder, template, special: Vec::new(), identity, notes: Vec::new() }
    }
}

/// What the other files of a tokenizer's folder say.
struct Config {
    name: String,
    special: Vec<(String, String)>,
    template: Option<String>,
    vocab_size: Option<u32>,
}

impl Config {
    fn open(folder: &Path) -> Result<Self, RenderError> {
        let name = folder
            .canonicalize()
            .ok()
            .and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        let tokenizer = object(&folder.join("tokenizer_config.json"))?;
        let model = object(&folder.join("config.json"))?;
        let processor = object(&folder.join("chat_template.json"))?;
        let text = |value: &Value| {
            value.as_str().or_else(|| value.get("content")?.as_str()).map(str::to_owned)
        };
        let entries = tokenizer.as_object().into_iter().flatten();
        let special = entries
            .filter(|(key, _)| key.ends_with("_token"))
            .filter_map(|(key, value)| Some((key.clone(), text(value)?)));
        let named = |list: &Vec<Value>| {
            let default = list.iter().find(|entry| entry["name"] == "default");
            Some(default.or(list.first())?["template"].as_str()?.to_owned())
        };
        let template = [&tokenizer["chat_template"], &processor["chat_template"]]
            .into_iter()
            .find_map(|value| {
                value.as_str().map(str::to_owned).or_else(|| value.as_array().and_then(named))
            });
        let vocab_size = model["vocab_size"].as_u64().and_then(|size| u32::try_from(size).ok());
        Ok(Self {
            name: name.unwrap_or_else(|| "tokenizer.json".into()),
            special: special.collect(),
            template,
            vocab_size,
        })
    }

    fn template(&self, folder: &Path) -> Result<Option<ChatTemplate>, RenderError> {
        let file = folder.join("chat_template.jinja");
        let (source, file) = match &self.template {
            _ if file.exists() => (template_source(&file)?, file),
            Some(source) => (source.clone(), folder.join("tokenizer_config.json")),
            None => return Ok(None),
        };
        ChatTemplate::new(&source, &self.special, &file.display().to_string()).map(Some)
    }
}

/// The JSON object in a file; empty where there is no file.
fn object(path: &Path) -> Result<Value, RenderError> {
    if !path.exists() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(&read(path)?).map_err(|error| RenderError::Tokenizer {
        file: path.display().to_string(),
        message: error.to_string(),
    })
}

/// The text of a template's file.
fn template_source(path: &Path) -> Result<String, RenderError> {
    String::from_utf8(read(path)?).map_err(|error| RenderError::Template {
        file: path.display().to_string(),
        message: format!("not UTF-8: {error}"),
    })
}

fn read(path: &Path) -> Result<Vec<u8>, RenderError> {
    std::fs::read(path)
        .map_err(|source| RenderError::Io { file: path.display().to_string(), source })
}
