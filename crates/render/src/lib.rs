//! Text as tokens: a chat template and a tokenizer applied to every view of a tree.
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
mod table;
mod target;
mod template;
mod view;

pub use error::RenderError;
pub use folder::Renderer;
pub use rewrite::Rendered;
pub use template::ChatTemplate;
