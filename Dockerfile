# The node daemon, its DNS server and the controller, in one image of 14 MB and the three programs: both iptables variants, of which
# gridproxy picks the one that the host uses, modprobe for mode ipvs, and no shell. deploy/image/rootfs makes the root
# file system, in the Dockerfile as in tests. Nothing runs on the architecture that it is built for, so no emulator is
# needed. make image chooses the builder, and says of which version and commit the image is; by hand:
#   docker buildx build --platform linux/arm64 --build-arg VERSION=1.0 --build-arg REVISION=$(git rev-parse HEAD) -t gridproxy:dev .
ARG GO_IMAGE=docker.io/library/golang:1.26-bookworm
ARG BASE_IMAGE=scratch

FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS build
ARG GOPROXY=https://proxy.golang.org,direct
ENV GOPROXY=${GOPROXY}
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
# grid-dns serves metrics, without TLS: half a megabyte of HTTP/2 is left out.
ARG TARGETARCH
ARG TARGETVARIANT
ARG ROOTFS_FLAGS=""
ARG SOURCE_DATE_EPOCH=0
ARG VERSION=""
ARG REVISION=""
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache \
    mkdir -p /out && go run -buildvcs=false ./deploy/image/rootfs ${ROOTFS_FLAGS} ${TARGETARCH} /tmp/rootfs.tar && \
    tar -C /out -xpf /tmp/rootfs.tar && \
    build() { CGO_ENABLED=0 GOARCH=${TARGETARCH} GOARM=${TARGETVARIANT#v} \
    go build -trimpath -buildvcs=false -o /out/usr/local/bin/ \
    -ldflags "-s -w -X gridproxy/cmd/command.version=${VERSION} -X gridproxy/cmd/command.revision=${REVISION}" "$@"; } && \
    build ./cmd/gridproxy ./cmd/grid-controller && \
    build -tags nethttpomithttp2 ./cmd/grid-dns

# An own base image lies below: with a shell, for example. It must be of the same release of Debian, or have no libraries.
FROM ${BASE_IMAGE}
ARG VERSION=""
ARG REVISION=""
LABEL org.opencontainers.image.title="gridproxy" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /out/ /
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin
ENTRYPOINT ["gridproxy"]
CMD ["run"]
