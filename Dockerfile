# The static program, its licences and the certificates of public authorities: no shell, no C library.
#
#   cargo xtask dist && docker build --file Dockerfile --tag cog:0.1.0 target/distribution/image
#   docker run --rm --publish 8000:8000 --env OPENAI_API_KEY --volume ./token:/token:ro cog:0.1.0 serve --listen 0.0.0.0 --token-file /token
FROM debian:13-slim AS files
RUN apt-get update && apt-get install --yes --no-install-recommends ca-certificates \
  && mkdir --parents /image/etc/ssl/certs /image/work \
  && cp /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ \
  && mkdir --mode=1777 /image/tmp && chown 65532:65532 /image/work

FROM scratch
ARG TARGETARCH
COPY --from=files /image /
COPY ${TARGETARCH}/ /
USER 65532:65532
WORKDIR /work
ENV HOME=/work
EXPOSE 8000
ENTRYPOINT ["/cog"]
CMD ["--help"]
