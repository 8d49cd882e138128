//! The CUDA C++ of the kernels, without a device.

use crate::{
    kernel::{
        Blocking, UNITS, mask::SizesCompilationArg, tree_attention_forward::TreeAttentionForward,
        tree_attention_key_gradient::TreeAttentionKeyGradient,
        tree_attention_query_gradient::TreeAttentionQueryGradient,
        tree_attention_row_terms::TreeAttentionRowTerms,
    },
    routine::Blockings,
};
use cubecl::{
    CubeDim, CubeKernel,
    ir::{
        AddressType, DeviceIdentity, DeviceProperties, ElemType, HardwareProperties,
        MemoryDeviceProperties, TargetProperties, VectorSize, features::Features,
    },
    prelude::{BufferCompilationArg, ExecutionMode, KernelSettings},
    profile::TimingMethod,
};
use cubecl_cpp::{
    shared::{CompilationOptions, CppCompiler},
    target::Cuda,
};
use std::sync::Arc;

/// CUDA C++ and the bytes of shared memory that it is launched with.
pub(crate) struct Source {
    pub(crate) text: String,
    pub(crate) shared: usize,
}

/// Forward, query gradient, key gradient and row terms.
pub(crate) fn sources(blockings: &Blockings, dtype: ElemType) -> [(&'static str, Source); 4] {
    let Blockings { forward, query_gradient, key_gradient } = *blockings;
    let properties = || Arc::new(properties());
    let target = || Arc::new(TargetProperties::default());
    let settings = |blocking: &Blocking| settings(blocking.units());
    let row_terms = TreeAttentionRowTerms::new(
        self::settings(UNITS),
        properties(),
        target(),
        buffer(),
        buffer(),
        buffer(),
        buffer(),
        forward.head_dim,
        dtype,
    );
    let forward = TreeAttentionForward::new(
        settings(&forward),
        properties(),
        target(),
        buffer(),
        buffer(),
        buffer(),
        buffer(),
        buffer(),
        buffer(),
        sizes(),
        (),
        (),
        forward,
        dtype,
    );
    let query = TreeAttentionQueryGradient::new(
        settings(&query_gradient),
        properties(),
        target(),
        buffer(),
        buffer(),
        buffer(),
        buffer(),
        buffer(),
        buffer(),
        buffer(),
        sizes(),
        (),
        query_gradient,
        dtype,
    );
    let key = TreeAttentionKeyGradient::new(
        settings(&key_gradient),
        properties(),
        target(),
        buffer(),
        buffer(),
        buffer(),
        buffer(),
        buffer(),
        buffer(),
        buffer(),
        buffer(),
        sizes(),
        (),
        key_gradient,
        dtype,
    );
    [
        ("forward", source(&forward)),
        ("query_gradient", source(&query)),
        ("key_gradient", source(&key)),
        ("row_terms", source(&row_terms)),
    ]
}

fn source<K: CubeKernel>(kernel: &K) -> Source {
    let mut compiler = CppCompiler::<Cuda>::default();
    let compiled =
        cubecl::Compiler::compile(&mut compiler, kernel.define(), &CompilationOptions::default());
    let compiled = compiled.expect("every kernel compiles to CUDA C++");
    Source { text: compiled.to_string(), shared: compiled.shared_memory_size }
}

fn settings(units: usize) -> KernelSettings {
    KernelSettings::new(*CubeDim::new_1d(units as u32), ExecutionMode::Unchecked, AddressType::U32)
}

fn buffer() -> BufferCompilationArg {
    BufferCompilationArg { inplace: None }
}

fn sizes() -> SizesCompilationArg {
    SizesCompilationArg {
        time: (),
        heads_q: (),
        heads_kv: (),
        tiles: (),
        offsets_at: (),
        entries_at: (),
        ends_at: (),
        positions_at: (),
        window: (),
        chunk: (),
        quads: (),
    }
}

/// What a device of compute capability 8.0 or later reports, as far as it shapes the source.
fn properties() -> DeviceProperties {
    let hardware = HardwareProperties {
        load_width: 128,
        vector_register_count: None,
        plane_size_min: 32,
        plane_size_max: 32,
        max_bindings: 32,
        max_shared_memory_size: 48 << 10,
        max_cube_count: (i32::MAX as u32, 65_535, 65_535),
        max_units_per_cube: 1_024,
        max_cube_dim: (1_024, 1_024, 64),
        num_streaming_multiprocessors: None,
        num_tensor_cores: None,
        min_tensor_cores_dim: None,
        num_cpu_cores: None,
        last_level_cache_size: None,
        max_vector_size: VectorSize::MAX,
        cube_mma_reserved_shared_memory: 0,
    };
    let memory = MemoryDeviceProperties::new(u64::MAX, 256);
    let identity =
        DeviceIdentity { name: "none".into(), fingerprint: "none".into(), physical: None };
    let mut properties = DeviceProperties::new(
        Features::default(),
        memory,
        hardware,
        TimingMethod::Device,
        identity,
    );
    cubecl_cpp::register_supported_types(&mut properties);
    properties
}
