pub(crate) mod races;
