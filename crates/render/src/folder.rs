use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pleach_tree::{BranchTree, TokenizerIdentity};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokenizers::AddedToken;

use super::encode::Encoder;
use super::rewrite::{Rendered, rewrite};
use super::template::hex;
use super::{ChatTemplate, RenderError};

/// Which tokens of a rendered answer carry loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Loss {
    /// All that the policy sampled: what the template writes for the answer behind the generation
    /// prompt, with the tags around thoughts and calls and the token that ends the turn, or what
    /// stands between the template's own `{% generation %}` tags where it has them.
    #[default]
    Turn,
    /// What was said: thought, text and call, without what the template writes around them.
    Text,
}

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
/// assert_eq!(text(&view.tokens()), "|user\nhi|\n|assistant\nho|");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Renderer {
    encoder: Encoder,
    template: ChatTemplate,
    special: Vec<(String, String)>,
    identity: TokenizerIdentity,
    notes: Vec<String>,
    loss: Loss,
}

impl Renderer {
    /// Bytes as tokens and the built-in ChatML template, for when no tokenizer is at hand.
    pub fn bytes() -> Self {
        Self::new(Encoder::bytes(), ChatTemplate::chatml(), "bytes".into(), None)
    }

    /// The tokenizer and the chat template of a Hugging Face folder, or of the folder in which
    /// `path`, a `tokenizer.json`, lies.
    ///
    /// The other files are read as transformers reads them: added and special tokens from
    /// `tokenizer_config.json`, or from `special_tokens_map.json` and `added_tokens.json` where it
    /// does not list them; what ends a turn from `generation_config.json` and `config.json`. The
    /// template is `chat_template.jinja`, else `chat_template` in `tokenizer_config.json` or
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
        let config = Config::open(folder)?;
        let encoder = Encoder::hugging_face(&json, &config.added).map_err(refused)?;
        let eos = config.special("eos_token").and_then(|token| encoder.id(token));
        let encoder = encoder.with_ends(config.ends.iter().copied().chain(eos));
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

    /// The same with loss on these tokens of an answer.
    #[must_use]
    pub fn with_loss(self, loss: Loss) -> Self {
        Self { loss, ..self }
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
    /// token belongs to the segment in whose text it starts. [`Loss`] says which tokens of an answer
    /// carry loss. Where the template does not show all that was sampled, the recorded text stands
    /// behind the prompt instead, and a note says so.
    ///
    /// # Errors
    /// A generation whose messages the template refuses, text that is not there, a tool call that
    /// is not one.
    pub fn render(&self, tree: &BranchTree) -> Result<Option<Rendered>, RenderError> {
        if tree.first_without_tokens().is_none() {
            return Ok(None);
        }
        let mut rendered = rewrite(tree, &self.template, &self.encoder, &self.identity, self.loss)?;
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
        let (special, notes, loss) = (Vec::new(), Vec::new(), Loss::default());
        Self { encoder, template, special, identity, notes, loss }
    }
}

/// What the other files of a tokenizer's folder say, read as transformers reads them.
struct Config {
    name: String,
    special: Vec<(String, String)>,
    added: Vec<AddedToken>,
    /// Ids that end what a model says, and the token that does.
    ends: Vec<u32>,
    template: Option<(PathBuf, Value)>,
    vocab_size: Option<u32>,
}

impl Config {
    fn open(folder: &Path) -> Result<Self, RenderError> {
        let name = folder
            .canonicalize()
            .ok()
            .and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        let file = |name: &str| object(&folder.join(name));
        let (tokenizer, model) = (file("tokenizer_config.json")?, file("config.json")?);
        let decoder = tokenizer["added_tokens_decoder"].as_object();
        // Where the configuration lists its added tokens, older files beside it are not read.
        let older = match decoder {
            Some(_) => [Value::Null, Value::Null],
            None => [file("special_tokens_map.json")?, file("added_tokens.json")?],
        };
        let [map, numbered] = &older;
        let mut special = BTreeMap::new();
        for values in [&tokenizer, map] {
            let entries = values.as_object().into_iter().flatten();
            let tokens = entries.filter(|(key, _)| key.ends_with("_token"));
            special.extend(tokens.filter_map(|(key, value)| Some((key.clone(), content(value)?))));
        }
        let added = match decoder {
            Some(decoder) => by_number(
                decoder
                    .iter()
                    .filter_map(|(id, token)| Some((id.parse().ok()?, added_token(token)?))),
            ),
            None => {
                by_number(numbered.as_object().into_iter().flatten().filter_map(|(token, id)| {
                    let is_special = special.values().any(|text| text == token);
                    Some((id.as_u64()?, AddedToken::from(token.as_str(), is_special)))
                }))
            }
        };
        let ends = [file("generation_config.json")?, model.clone()]
            .iter()
            .flat_map(|config| numbers(&config["eos_token_id"]))
            .collect();
        let processor = file("chat_template.json")?;
        let template = [("tokenizer_config.json", &tokenizer), ("chat_template.json", &processor)]
            .map(|(name, config)| (folder.join(name), config["chat_template"].clone()))
            .into_iter()
            .find(|(_, value)| !value.is_null());
        let vocab_size = model["vocab_size"].as_u64().and_then(|size| u32::try_from(size).ok());
        Ok(Self {
            name: name.unwrap_or_else(|| "tokenizer.json".into()),
            special: special.into_iter().collect(),
            added,
            ends,
            template,
            vocab_size,
        })
    }

    /// The text that a special token has, by its name.
    fn special(&self, name: &str) -> Option<&str> {
        self.special.iter().find(|(key, _)| key == name).map(|(_, text)| text.as_str())
    }

    /// The chat template: a file of its own, or what the configuration holds, of several the one
    /// called `default`.
    fn template(&self, folder: &Path) -> Result<Option<ChatTemplate>, RenderError> {
        let own = folder.join("chat_template.jinja");
        let (source, file) = match &self.template {
            _ if own.exists() => (template_source(&own)?, own),
            None => return Ok(None),
            Some((file, Value::Array(list))) => (default_template(list, file)?, file.clone()),
            Some((file, value)) => {
                let source = value.as_str().ok_or_else(|| RenderError::Template {
                    file: file.display().to_string(),
                    message: "chat_template is neither a text nor a list of named ones".into(),
                })?;
                (source.to_owned(), file.clone())
            }
        };
        ChatTemplate::new(&source, &self.special, &file.display().to_string()).map(Some)
    }
}

fn default_template(list: &[Value], file: &Path) -> Result<String, RenderError> {
    let default = list.iter().find(|entry| entry["name"] == "default");
    default.and_then(|entry| entry["template"].as_str()).map(str::to_owned).ok_or_else(|| {
        let names = list.iter().filter_map(|entry| entry["name"].as_str());
        RenderError::Templates {
            file: file.display().to_string(),
            names: names.map(str::to_owned).collect(),
        }
    })
}

/// The text of a token, which stands by itself or with how it is found.
fn content(token: &Value) -> Option<String> {
    token.as_str().or_else(|| token.get("content")?.as_str()).map(str::to_owned)
}

fn added_token(token: &Value) -> Option<AddedToken> {
    let is = |key: &str| token[key].as_bool().unwrap_or(false);
    let added = AddedToken::from(content(token)?, is("special"));
    Some(
        added
            .single_word(is("single_word"))
            .lstrip(is("lstrip"))
            .rstrip(is("rstrip"))
            .normalized(token["normalized"].as_bool().unwrap_or(!is("special"))),
    )
}

fn by_number(tokens: impl Iterator<Item = (u64, AddedToken)>) -> Vec<AddedToken> {
    tokens.collect::<BTreeMap<_, _>>().into_values().collect()
}

/// One id, or a list of them.
fn numbers(value: &Value) -> Vec<u32> {
    let one = |value: &Value| u32::try_from(value.as_u64()?).ok();
    match value {
        Value::Array(list) => list.iter().filter_map(one).collect(),
        value => one(value).into_iter().collect(),
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
