mod grade;
pub(crate) mod races;
