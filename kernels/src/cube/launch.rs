use super::{
    kernel::{
        Blocking, LANES, UNITS, tree_attention_forward, tree_attention_key_gradient,
        tree_attention_query_gradient, tree_attention_row_terms,
    },
    plan::CubePlan,
    prepare::Prepared,
};
use cubecl::{CubeDim, client::Client, prelude::BufferArg, server::Handle};

/// The buffers of a forward pass, contiguous and of the prepared sizes.
pub(crate) struct Forward<'a> {
    /// `[batch, heads_q, time, head_dim]`
    pub(crate) q: &'a Handle,
    /// `[batch, heads_kv, time, head_dim]`
    pub(crate) k: &'a Handle,
    /// `[batch, heads_kv, time, head_dim]`
    pub(crate) v: &'a Handle,
    /// `[batch, heads_q, time, head_dim]`, written
    pub(crate) o: &'a Handle,
    /// `[batch, heads_q, time]`, float32, written
    pub(crate) lse: &'a Handle,
}

/// The buffers of a backward pass, contiguous and of the prepared sizes.
pub(crate) struct Backward<'a> {
    /// What the forward pass read and wrote.
    pub(crate) forward: Forward<'a>,
    /// `[batch, heads_q, time, head_dim]`, the gradient that comes in
    pub(crate) d_o: &'a Handle,
    /// `[2, batch, heads_q, time]`, float32, scratch
    pub(crate) rows: &'a Handle,
    /// `[batch, heads_q, time, head_dim]`, written
    pub(crate) dq: &'a Handle,
    /// `[batch, heads_kv, time, head_dim]`, written
    pub(crate) dk: &'a Handle,
    /// `[batch, heads_kv, time, head_dim]`, written
    pub(crate) dv: &'a Handle,
}

/// Buffers as arguments, with the lengths that a preparation implies.
struct Arguments<'a>(&'a Prepared);

impl Arguments<'_> {
    fn queries(&self, handle: &Handle) -> BufferArg {
        self.heads(handle, self.0.problem.heads_q)
    }

    fn keys(&self, handle: &Handle) -> BufferArg {
        self.heads(handle, self.0.problem.heads_kv)
    }

    fn heads(&self, handle: &Handle, heads: usize) -> BufferArg {
        let problem = self.0.problem;
        argument(handle, problem.batch * heads * problem.time * (problem.head_dim / LANES))
    }

    fn rows(&self, handle: &Handle, terms: usize) -> BufferArg {
        argument(handle, terms * self.0.rows())
    }

    fn plan(&self, plan: &CubePlan) -> BufferArg {
        argument(plan.handle(), self.0.plan.length)
    }
}

#[allow(unsafe_code, reason = "buffer arguments take their length on trust")]
fn argument(handle: &Handle, length: usize) -> BufferArg {
    // SAFETY: the callers in `tensors` allocate or check every buffer for the sizes that the
    // lengths are computed from.
    unsafe { BufferArg::from_raw_parts(handle.clone(), length) }
}

fn dim(blocking: &Blocking) -> CubeDim {
    CubeDim::new_1d(blocking.units() as u32)
}

/// Launches the forward pass.
#[allow(unsafe_code, reason = "bounds are checked on the host once instead of at every access")]
pub(crate) fn forward(
    client: &Client,
    prepared: &Prepared,
    plan: &CubePlan,
    buffers: &Forward<'_>,
    scale: f32,
) {
    let [count, ..] = prepared.cubes();
    let blocking = prepared.blockings.forward;
    let arguments = Arguments(prepared);
    // SAFETY: every buffer has the prepared length, the plan was made for this batch and length,
    // reads beyond `time` are guarded in the kernel, and barriers stand outside of branches that
    // differ between units.
    unsafe {
        tree_attention_forward::launch_unchecked(
            client,
            count,
            dim(&blocking),
            prepared.address,
            arguments.queries(buffers.q),
            arguments.keys(buffers.k),
            arguments.keys(buffers.v),
            arguments.plan(plan),
            arguments.queries(buffers.o),
            arguments.rows(buffers.lse, 1),
            prepared.forward_sizes(),
            scale,
            f32::NEG_INFINITY,
            blocking,
            prepared.dtype,
        );
    }
}

/// Launches the backward pass: row terms, gradients of queries, gradients of keys and values.
pub(crate) fn backward(
    client: &Client,
    prepared: &Prepared,
    plan: &CubePlan,
    buffers: &Backward<'_>,
    scale: f32,
) {
    row_terms(client, prepared, buffers);
    query_gradient(client, prepared, plan, buffers, scale);
    key_gradient(client, prepared, plan, buffers, scale);
}

#[allow(unsafe_code, reason = "bounds are checked on the host once instead of at every access")]
fn row_terms(client: &Client, prepared: &Prepared, buffers: &Backward<'_>) {
    let [.., count] = prepared.cubes();
    let arguments = Arguments(prepared);
    // SAFETY: as in `forward`; rows beyond the last are guarded in the kernel.
    unsafe {
        tree_attention_row_terms::launch_unchecked(
            client,
            count,
            CubeDim::new_1d(UNITS as u32),
            prepared.address,
            arguments.queries(buffers.forward.o),
            arguments.queries(buffers.d_o),
            arguments.rows(buffers.forward.lse, 1),
            arguments.rows(buffers.rows, 2),
            prepared.problem.head_dim,
            prepared.dtype,
        );
    }
}

#[allow(unsafe_code, reason = "bounds are checked on the host once instead of at every access")]
fn query_gradient(
    client: &Client,
    prepared: &Prepared,
    plan: &CubePlan,
    buffers: &Backward<'_>,
    scale: f32,
) {
    let [_, count, ..] = prepared.cubes();
    let blocking = prepared.blockings.query_gradient;
    let arguments = Arguments(prepared);
    // SAFETY: as in `forward`.
    unsafe {
        tree_attention_query_gradient::launch_unchecked(
            client,
            count,
            dim(&blocking),
            prepared.address,
            arguments.queries(buffers.forward.q),
            arguments.keys(buffers.forward.k),
            arguments.keys(buffers.forward.v),
            arguments.queries(buffers.d_o),
            arguments.rows(buffers.rows, 2),
            arguments.plan(plan),
            arguments.queries(buffers.dq),
            prepared.query_sizes(),
            scale,
            blocking,
            prepared.dtype,
        );
    }
}

#[allow(unsafe_code, reason = "bounds are checked on the host once instead of at every access")]
fn key_gradient(
    client: &Client,
    prepared: &Prepared,
    plan: &CubePlan,
    buffers: &Backward<'_>,
    scale: f32,
) {
    let [_, _, count, _] = prepared.cubes();
    let blocking = prepared.blockings.key_gradient;
    let arguments = Arguments(prepared);
    // SAFETY: as in `forward`.
    unsafe {
        tree_attention_key_gradient::launch_unchecked(
            client,
            count,
            dim(&blocking),
            prepared.address,
            arguments.queries(buffers.forward.q),
            arguments.keys(buffers.forward.k),
            arguments.keys(buffers.forward.v),
            arguments.queries(buffers.d_o),
            arguments.rows(buffers.rows, 2),
            arguments.plan(plan),
            arguments.keys(buffers.dk),
            arguments.keys(buffers.dv),
            prepared.key_sizes(),
            scale,
            blocking,
            prepared.dtype,
        );
    }
}
