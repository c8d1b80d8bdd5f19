//! Decisions of passes as data of the IR, from which remarks are made.

/// What was decided about an optimisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision<T> {
    /// It is applied.
    Applied(T),
    /// It is not applied, for that reason.
    Missed(&'static str),
}
