# The service, from source. Plain Dockerfile syntax: with BuildKit and without.
FROM rust:1.95.0-bookworm AS build
WORKDIR /src

# What the project stands on changes seldom: compiled from the manifests alone, without the tests and examples that they name,
# and with empty sources, in a layer of its own.
COPY Cargo.toml Cargo.lock ./
COPY lock/Cargo.toml lock/
COPY lab/Cargo.toml lab/
COPY course/Cargo.toml course/
# Another registry of crates, where crates.io is slow or closed: sparse+https://…/
ARG CRATES
RUN sed -i '/^\[\[/,/^$/d' Cargo.toml */Cargo.toml \
 && mkdir -p src lock/src lab/src course/src \
 && echo 'fn main() {}' | tee build.rs lab/build.rs course/src/main.rs >src/lib.rs \
 && touch lock/src/lib.rs lab/src/lib.rs \
 && if [ -n "$CRATES" ]; then \
        printf '[source.crates-io]\nreplace-with = "near"\n[source.near]\nregistry = "%s"\n' "$CRATES" >"$CARGO_HOME/config.toml"; \
    fi \
 && cargo build --release --locked --package oversell-course \
 && rm -rf build.rs src */build.rs */src

# Newer than what was compiled from the empty sources, whatever their own time stamps say.
COPY . .
RUN find build.rs src */build.rs */src -type f -exec touch {} + \
 && cargo build --release --locked --bin oversell \
 && strip -o /usr/local/bin/oversell target/release/oversell

FROM debian:12.12-slim
RUN useradd --system --no-create-home --uid 10001 oversell
COPY --from=build /usr/local/bin/oversell /usr/local/bin/oversell
USER oversell
ENV OVERSELL__SERVER__HOST=0.0.0.0 OVERSELL__SERVER__PORT=8000
EXPOSE 8000
# The image has no HTTP client; bash's own sockets will do.
HEALTHCHECK --interval=3s --timeout=3s --start-period=2m --retries=5 \
    CMD bash -c 'exec 3<>/dev/tcp/127.0.0.1/$OVERSELL__SERVER__PORT && printf "GET /health/ready HTTP/1.0\r\n\r\n" >&3 && head -1 <&3 | grep -q " 200 "'
ENTRYPOINT ["oversell"]
CMD ["serve"]
