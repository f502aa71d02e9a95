# hark for CPUs, from this source tree's commit:
#   docker build -f packages/docker/cpu.Dockerfile -t hark .
#   docker run --rm -v "$PWD:/data" hark hark transcribe talk.mp3 --model demo
FROM debian:bookworm AS build
WORKDIR /src
COPY . .
# hadolint ignore=DL3008
RUN apt-get update && \
    apt-get install -y --no-install-recommends ca-certificates git && \
    packages/build.sh --build /build/hark /out && \
    mkdir /root/hark && \
    tar -C /root/hark --strip-components=1 -xf /out/hark-*.tar.gz

FROM debian:bookworm-slim
LABEL org.opencontainers.image.title="hark" \
      org.opencontainers.image.description="speech to text to language model" \
      org.opencontainers.image.licenses="MIT"
# hadolint ignore=DL3008
RUN apt-get update && \
    apt-get install -y --no-install-recommends ca-certificates curl jq && \
    rm -rf /var/lib/apt/lists/* && \
    useradd --uid 10001 --create-home hark && \
    install -d -o hark /data /models
COPY --from=build /root/hark /opt/hark
# Models are kept in the volume /models, recordings are in /data.
ENV PATH=/opt/hark/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    XDG_DATA_HOME=/models \
    LC_ALL=C.UTF-8
USER 10001
WORKDIR /data
CMD ["hark", "--help"]
