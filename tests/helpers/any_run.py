"""Any configuration that a user may give, for tests of properties."""

from hypothesis import strategies as st

from scalechannels.training.config import DataConfig, NetworkConfig, RunConfig, TrainingConfig

configs = st.builds(
    RunConfig,
    st.builds(
        DataConfig,
        st.sampled_from(["strokes", "mnist"]),
        st.sampled_from([(1.0,), (2.0,), (1.0, 4.0), (1e-3,), (1 / 3, 2 / 3)]),
        st.none() | st.integers(10, 10**6),
        st.integers(0, 2**30 - 1),
    ),
    st.builds(
        NetworkConfig,
        st.sampled_from(["fovavg", "fovmax", "fovlse", "fovconc"]),
        antialias=st.booleans(),
        blur=st.none() | st.floats(1e-9, 1e4),
        dropout=st.none() | st.floats(0, 0.99),
    ),
    st.builds(
        TrainingConfig,
        epochs=st.none() | st.integers(1, 10**9),
        rate=st.none() | st.floats(5e-5, 1e38),
        schedule=st.sampled_from([None, "step", "cosine"]),
        seed=st.integers(0, 2**30 - 1),
    ),
)
