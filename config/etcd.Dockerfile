# etcd, from Debian: its project keeps no image where those of the other servers are.
FROM debian:13.1-slim
RUN apt-get update \
 && apt-get install --yes --no-install-recommends etcd-server etcd-client \
 && rm -rf /var/lib/apt/lists/*
USER etcd
EXPOSE 2379
CMD ["etcd"]
