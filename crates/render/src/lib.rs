//! Text as tokens: a chat template and a tokenizer applied to every view of a tree.
//!
//! Most harnesses record text. A [`Renderer`] is a Hugging Face folder, its tokenizer and its
//! [`ChatTemplate`], or bytes under ChatML where none is at hand; [`Renderer::render`] makes records
//! with token ids of a tree of text, so that the context of each call is, id for id, what the
//! template makes of its messages. What a template renders differently later, such as a thought
//! that it leaves out of older turns, is an eviction by the rule `chat_template`.
mod argument;
mod call;
mod encode;
mod error;
mod folder;
mod hunk;
mod list_edit;
mod lists;
mod mark;
mod message;
mod note;
mod operation;
mod output;
mod provenance;
mod python;
mod rewrite;
mod splice;
mod survival;
mod table;
mod target;
mod template;
mod view;
mod window;

pub use error::RenderError;
pub use folder::{Loss, Renderer};
pub use rewrite::Rendered;
pub use template::ChatTemplate;
