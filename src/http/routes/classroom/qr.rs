//! `/classroom/qr.svg`: an address as a QR code, for phones.

use crate::http::routes::prelude::*;
use qrcode::{QrCode, render::svg};

/// Limit of the address, in bytes: a longer one gives a code that a phone in the last row cannot read.
const MAX_URL_BYTES: usize = 200;

#[derive(Debug, Deserialize, Validate, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct Address {
    /// An address that begins with http:// or https://.
    #[garde(custom(check_url))]
    #[param(max_length = 200, pattern = "^https?://", example = "http://192.168.1.5:8080/class.html#/2.10.6?me")]
    url: String,
}

fn check_url(url: &str, (): &()) -> garde::Result {
    let is_one = url.len() <= MAX_URL_BYTES && (url.starts_with("http://") || url.starts_with("https://"));
    require(is_one, format_args!("must begin with http:// or https://, and have at most {MAX_URL_BYTES} bytes"))
}

/// The code as a picture, black on white.
#[utoipa::path(get, path = "/classroom/qr.svg", tag = "classroom", params(Address),
    responses((status = 200, description = "The code", body = String, content_type = "image/svg+xml")))]
pub(in crate::http) async fn qr(Query(Address { url }): Query<Address>) -> Result<Response, Error> {
    let code = QrCode::new(&url).map_err(|error| Error::bad_input("url", error.to_string()))?;
    let picture = code.render::<svg::Color<'_>>().build();
    Ok(([(header::CONTENT_TYPE, "image/svg+xml")], picture).into_response())
}
