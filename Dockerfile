# The service, from source. Plain Dockerfile syntax: with BuildKit and without.
FROM rust:1.95-bookworm AS chef
RUN cargo install --locked --root /usr/local cargo-chef@0.1.78
WORKDIR /src

# What the project stands on changes seldom: it is read out of the manifests here, and compiled in a layer of its own.
FROM chef AS plan
COPY . .
RUN cargo chef prepare --bin oversell --recipe-path recipe.json

FROM chef AS build
COPY --from=plan /src/recipe.json .
RUN cargo chef cook --release --locked --bin oversell --recipe-path recipe.json
COPY . .
RUN cargo build --release --locked --bin oversell \
 && strip -o /usr/local/bin/oversell target/release/oversell

FROM debian:bookworm-slim
RUN useradd --system --no-create-home --uid 10001 oversell
COPY --from=build /usr/local/bin/oversell /usr/local/bin/oversell
USER oversell
ENV OVERSELL__SERVER__HOST=0.0.0.0 OVERSELL__SERVER__PORT=8000
EXPOSE 8000
# The image has no HTTP client; bash's own sockets will do.
HEALTHCHECK --interval=3s --timeout=3s --start-period=20s --retries=5 \
    CMD bash -c 'exec 3<>/dev/tcp/127.0.0.1/$OVERSELL__SERVER__PORT && printf "GET /health/ready HTTP/1.0\r\n\r\n" >&3 && head -1 <&3 | grep -q " 200 "'
ENTRYPOINT ["oversell"]
CMD ["serve"]
