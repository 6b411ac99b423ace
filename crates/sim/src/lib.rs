pub mod histogram;
pub mod source;
