//! A decoder of the Llama, Qwen2 or Qwen3 family, its configuration, and Hugging Face checkpoints.
mod attention;
mod checkpoint;
mod config;
mod feed_forward;
mod layers;
mod replay;
mod seeded;
mod weights;

pub use checkpoint::{load_decoder, read_config};
pub use config::{DecoderConfig, Family, RopeScaling};
pub(crate) use weights::{Builder, WeightSource};

use crate::{batch::Batch, error::TrainError, model::CausalModel};
use attention::{Conditioning, SelfAttention};
use burn::{
    module::Module,
    tensor::{DType, Device, Int, Tensor},
};
use feed_forward::SwiGlu;
pub use layers::RmsNorm;
use layers::{Embedding, Projection};
use pleach_kernels::{Rotary, TreeMask, ViewMask};
use std::sync::Arc;

/// A decoder of the Llama, Qwen2 or Qwen3 family, by explicit positions and tree attention.
///
/// Parameters keep the names, shapes and [out, in] orientation of Hugging Face checkpoints: the
/// path of a parameter in this module is its name in the file. Everything, RoPE and RMSNorm
/// included, is computed in the dtype of the weights.
#[derive(Module, Debug)]
pub struct Decoder {
    model: Backbone,
    lm_head: Option<Projection>,
    #[module(skip)]
    config: Arc<DecoderConfig>,
}

#[derive(Module, Debug)]
struct Backbone {
    embed_tokens: Embedding,
    layers: Vec<Layer>,
    norm: RmsNorm,
}

#[derive(Module, Debug)]
struct Layer {
    input_layernorm: RmsNorm,
    self_attn: SelfAttention,
    post_attention_layernorm: RmsNorm,
    mlp: SwiGlu,
}

impl Decoder {
    /// A decoder with seeded weights, the same on every machine and device.
    ///
    /// # Errors
    /// A configuration that no model can have, and a dtype other than float32 and float64.
    pub fn seeded(
        config: DecoderConfig,
        seed: u64,
        dtype: DType,
        device: &Device,
    ) -> Result<Self, TrainError> {
        Self::build(config, &mut seeded::SeededWeights::new(seed), dtype, device)
    }

    /// A decoder whose parameters come from `source`, asked for by name.
    pub(crate) fn build(
        config: DecoderConfig,
        source: &mut dyn WeightSource,
        dtype: DType,
        device: &Device,
    ) -> Result<Self, TrainError> {
        config.validate()?;
        if !matches!(dtype, DType::F32 | DType::F64) {
            return Err(TrainError::Dtype { what: "a decoder's parameters", dtype });
        }
        let mut builder = Builder::new(source, dtype, device);
        let size = [config.vocab_size, config.hidden_size];
        let embed_tokens = Embedding::build("model.embed_tokens", size, &mut builder)?;
        let mut layers = Vec::with_capacity(config.layers);
        for index in 0..config.layers {
            layers.push(Layer::build(&format!("model.layers.{index}"), &config, &mut builder)?);
        }
        let norm =
            RmsNorm::build("model.norm", config.hidden_size, config.rms_norm_eps, &mut builder)?;
        let lm_head = match config.tie_word_embeddings {
            true => None,
            false => Some(Projection::build("lm_head", size, false, &mut builder)?),
        };
        Ok(Self {
            model: Backbone { embed_tokens, layers, norm },
            lm_head,
            config: Arc::new(config),
        })
    }

    /// The architecture.
    pub fn config(&self) -> &DecoderConfig {
        &self.config
    }

    /// Hidden states of one row of tokens in which every token names what it sees, for comparison
    /// with the exact layouts.
    ///
    /// # Shapes
    /// `tokens`: as many as the mask has rows; returns `[1, time, width]`.
    ///
    /// # Errors
    /// Token ids outside the vocabulary, and layers with a sliding window, which such a mask does not
    /// describe.
    pub fn hidden_under_views(
        &self,
        tokens: &[u32],
        mask: &ViewMask,
    ) -> Result<Tensor<3>, TrainError> {
        if self.config.windows.iter().any(Option::is_some) {
            return Err(TrainError::Unsupported {
                what: "a mask of views, such as the union's, does not describe sliding windows: compare with a model without them".to_owned(),
            });
        }
        self.check_token(tokens.iter().copied().max().unwrap_or_default())?;
        let ids: Vec<i64> = tokens.iter().copied().map(i64::from).collect();
        let device = self.model.embed_tokens.device();
        let tokens_bt = Tensor::<1, Int>::from_data(ids.as_slice(), &device.without_autodiff());
        let inverse_frequencies = self.config.inverse_frequencies();
        let views = Conditioning::Views {
            mask,
            inverse_frequencies: &inverse_frequencies,
            rotary_scale: self.config.rotary_scale(),
        };
        self.run(tokens_bt.unsqueeze(), |_| views)
    }

    fn run<'a>(
        &self,
        tokens_bt: Tensor<2, Int>,
        conditioning: impl Fn(usize) -> Conditioning<'a>,
    ) -> Result<Tensor<3>, TrainError> {
        let mut x_btc = self.model.embed_tokens.forward(tokens_bt);
        for (index, layer) in self.model.layers.iter().enumerate() {
            x_btc = layer.forward(x_btc, conditioning(index))?;
        }
        Ok(self.model.norm.forward(x_btc))
    }

    fn check_token(&self, token: u32) -> Result<(), TrainError> {
        let vocabulary = self.config.vocab_size;
        match (token as usize) < vocabulary {
            true => Ok(()),
            false => Err(TrainError::Vocabulary { token, vocabulary }),
        }
    }
}

impl Layer {
    fn build(
        name: &str,
        config: &DecoderConfig,
        builder: &mut Builder<'_>,
    ) -> Result<Self, TrainError> {
        let norm = |part: &str, builder: &mut Builder<'_>| {
            let name = format!("{name}.{part}");
            RmsNorm::build(&name, config.hidden_size, config.rms_norm_eps, builder)
        };
        Ok(Self {
            input_layernorm: norm("input_layernorm", builder)?,
            self_attn: SelfAttention::build(&format!("{name}.self_attn"), config, builder)?,
            post_attention_layernorm: norm("post_attention_layernorm", builder)?,
            mlp: SwiGlu::build(&format!("{name}.mlp"), config, builder)?,
        })
    }

    fn forward(
        &self,
        x_btc: Tensor<3>,
        conditioning: Conditioning<'_>,
    ) -> Result<Tensor<3>, TrainError> {
        let normed_btc = self.input_layernorm.forward(x_btc.clone());
        let x_btc = x_btc.add(self.self_attn.forward(normed_btc, conditioning)?);
        let normed_btc = self.post_attention_layernorm.forward(x_btc.clone());
        Ok(x_btc.add(self.mlp.forward(normed_btc)))
    }
}

impl CausalModel for Decoder {
    fn hidden(&self, batch: &Batch) -> Result<Tensor<3>, TrainError> {
        self.check_token(batch.largest_token())?;
        let rotary = Rotary::new(
            batch.position_rows(),
            &self.config.inverse_frequencies(),
            self.model.embed_tokens.dtype(),
            &self.model.embed_tokens.device(),
        )?
        .scaled(self.config.rotary_scale());
        let masks = self.config.windows.iter().map(|window| match window {
            None => Ok(batch.mask().clone()),
            Some(length) => batch.windowed_mask(*length),
        });
        let masks: Vec<TreeMask> = masks.collect::<Result<_, TrainError>>()?;
        self.run(batch.tokens_bt(), |layer| Conditioning::Tree {
            mask: &masks[layer],
            rotary: &rotary,
        })
    }

    fn vocabulary(&self) -> usize {
        self.config.vocab_size
    }

    fn logits(&self, hidden_nd: Tensor<2>) -> Tensor<2> {
        match &self.lm_head {
            Some(head) => head.forward(hidden_nd),
            None => self.model.embed_tokens.logits(hidden_nd),
        }
    }
}
