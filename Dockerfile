# The node daemon and the controller. The image brings both iptables variants; gridproxy picks the one that
# the host uses. kmod is for mode ipvs: the kernel loads every module by itself but ip_vs.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w" -o /out/ ./cmd/gridproxy ./cmd/grid-controller

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends iptables kmod && rm -rf /var/lib/apt/lists/*
COPY --from=build /out/ /usr/local/bin/
ENTRYPOINT ["gridproxy"]
CMD ["run"]
